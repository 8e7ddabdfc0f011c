# Completion of the commands of mlmglauber, made by completions/build.py.

function _mlm_estimate_completion;
    set -l response (env _MLM_ESTIMATE_COMPLETE=fish_complete COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -t) mlm-estimate);

    for completion in $response;
        set -l metadata (string split "," $completion);

        if test $metadata[1] = "dir";
            __fish_complete_directories $metadata[2];
        else if test $metadata[1] = "file";
            __fish_complete_path $metadata[2];
        else if test $metadata[1] = "plain";
            echo $metadata[2];
        end;
    end;
end;

complete --no-files --command mlm-estimate --arguments "(_mlm_estimate_completion)";
