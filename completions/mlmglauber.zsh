#compdef mlm-basins mlm-couple mlm-drift mlm-embed mlm-exact mlm-influence mlm-plot mlm-rect mlm-report mlm-sample mlm-tokens mlm-traps
# Completion of the commands of mlmglauber, made by completions/build.py.

_mlm_basins_completion() {
    local -a completions
    local -a completions_with_descriptions
    local -a response
    (( ! $+commands[mlm-basins] )) && return 1

    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) _MLM_BASINS_COMPLETE=zsh_complete mlm-basins)}")

    for type key descr in ${response}; do
        if [[ "$type" == "plain" ]]; then
            if [[ "$descr" == "_" ]]; then
                completions+=("$key")
            else
                completions_with_descriptions+=("$key":"$descr")
            fi
        elif [[ "$type" == "dir" ]]; then
            _path_files -/
        elif [[ "$type" == "file" ]]; then
            _path_files -f
        fi
    done

    if [ -n "$completions_with_descriptions" ]; then
        _describe -V unsorted completions_with_descriptions -U
    fi

    if [ -n "$completions" ]; then
        compadd -U -V unsorted -a completions
    fi
}

_mlm_couple_completion() {
    local -a completions
    local -a completions_with_descriptions
    local -a response
    (( ! $+commands[mlm-couple] )) && return 1

    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) _MLM_COUPLE_COMPLETE=zsh_complete mlm-couple)}")

    for type key descr in ${response}; do
        if [[ "$type" == "plain" ]]; then
            if [[ "$descr" == "_" ]]; then
                completions+=("$key")
            else
                completions_with_descriptions+=("$key":"$descr")
            fi
        elif [[ "$type" == "dir" ]]; then
            _path_files -/
        elif [[ "$type" == "file" ]]; then
            _path_files -f
        fi
    done

    if [ -n "$completions_with_descriptions" ]; then
        _describe -V unsorted completions_with_descriptions -U
    fi

    if [ -n "$completions" ]; then
        compadd -U -V unsorted -a completions
    fi
}

_mlm_drift_completion() {
    local -a completions
    local -a completions_with_descriptions
    local -a response
    (( ! $+commands[mlm-drift] )) && return 1

    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) _MLM_DRIFT_COMPLETE=zsh_complete mlm-drift)}")

    for type key descr in ${response}; do
        if [[ "$type" == "plain" ]]; then
            if [[ "$descr" == "_" ]]; then
                completions+=("$key")
            else
                completions_with_descriptions+=("$key":"$descr")
            fi
        elif [[ "$type" == "dir" ]]; then
            _path_files -/
        elif [[ "$type" == "file" ]]; then
            _path_files -f
        fi
    done

    if [ -n "$completions_with_descriptions" ]; then
        _describe -V unsorted completions_with_descriptions -U
    fi

    if [ -n "$completions" ]; then
        compadd -U -V unsorted -a completions
    fi
}

_mlm_embed_completion() {
    local -a completions
    local -a completions_with_descriptions
    local -a response
    (( ! $+commands[mlm-embed] )) && return 1

    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) _MLM_EMBED_COMPLETE=zsh_complete mlm-embed)}")

    for type key descr in ${response}; do
        if [[ "$type" == "plain" ]]; then
            if [[ "$descr" == "_" ]]; then
                completions+=("$key")
            else
                completions_with_descriptions+=("$key":"$descr")
            fi
        elif [[ "$type" == "dir" ]]; then
            _path_files -/
        elif [[ "$type" == "file" ]]; then
            _path_files -f
        fi
    done

    if [ -n "$completions_with_descriptions" ]; then
        _describe -V unsorted completions_with_descriptions -U
    fi

    if [ -n "$completions" ]; then
        compadd -U -V unsorted -a completions
    fi
}

_mlm_exact_completion() {
    local -a completions
    local -a completions_with_descriptions
    local -a response
    (( ! $+commands[mlm-exact] )) && return 1

    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) _MLM_EXACT_COMPLETE=zsh_complete mlm-exact)}")

    for type key descr in ${response}; do
        if [[ "$type" == "plain" ]]; then
            if [[ "$descr" == "_" ]]; then
                completions+=("$key")
            else
                completions_with_descriptions+=("$key":"$descr")
            fi
        elif [[ "$type" == "dir" ]]; then
            _path_files -/
        elif [[ "$type" == "file" ]]; then
            _path_files -f
        fi
    done

    if [ -n "$completions_with_descriptions" ]; then
        _describe -V unsorted completions_with_descriptions -U
    fi

    if [ -n "$completions" ]; then
        compadd -U -V unsorted -a completions
    fi
}

_mlm_influence_completion() {
    local -a completions
    local -a completions_with_descriptions
    local -a response
    (( ! $+commands[mlm-influence] )) && return 1

    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) _MLM_INFLUENCE_COMPLETE=zsh_complete mlm-influence)}")

    for type key descr in ${response}; do
        if [[ "$type" == "plain" ]]; then
            if [[ "$descr" == "_" ]]; then
                completions+=("$key")
            else
                completions_with_descriptions+=("$key":"$descr")
            fi
        elif [[ "$type" == "dir" ]]; then
            _path_files -/
        elif [[ "$type" == "file" ]]; then
            _path_files -f
        fi
    done

    if [ -n "$completions_with_descriptions" ]; then
        _describe -V unsorted completions_with_descriptions -U
    fi

    if [ -n "$completions" ]; then
        compadd -U -V unsorted -a completions
    fi
}

_mlm_plot_completion() {
    local -a completions
    local -a completions_with_descriptions
    local -a response
    (( ! $+commands[mlm-plot] )) && return 1

    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) _MLM_PLOT_COMPLETE=zsh_complete mlm-plot)}")

    for type key descr in ${response}; do
        if [[ "$type" == "plain" ]]; then
            if [[ "$descr" == "_" ]]; then
                completions+=("$key")
            else
                completions_with_descriptions+=("$key":"$descr")
            fi
        elif [[ "$type" == "dir" ]]; then
            _path_files -/
        elif [[ "$type" == "file" ]]; then
            _path_files -f
        fi
    done

    if [ -n "$completions_with_descriptions" ]; then
        _describe -V unsorted completions_with_descriptions -U
    fi

    if [ -n "$completions" ]; then
        compadd -U -V unsorted -a completions
    fi
}

_mlm_rect_completion() {
    local -a completions
    local -a completions_with_descriptions
    local -a response
    (( ! $+commands[mlm-rect] )) && return 1

    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) _MLM_RECT_COMPLETE=zsh_complete mlm-rect)}")

    for type key descr in ${response}; do
        if [[ "$type" == "plain" ]]; then
            if [[ "$descr" == "_" ]]; then
                completions+=("$key")
            else
                completions_with_descriptions+=("$key":"$descr")
            fi
        elif [[ "$type" == "dir" ]]; then
            _path_files -/
        elif [[ "$type" == "file" ]]; then
            _path_files -f
        fi
    done

    if [ -n "$completions_with_descriptions" ]; then
        _describe -V unsorted completions_with_descriptions -U
    fi

    if [ -n "$completions" ]; then
        compadd -U -V unsorted -a completions
    fi
}

_mlm_report_completion() {
    local -a completions
    local -a completions_with_descriptions
    local -a response
    (( ! $+commands[mlm-report] )) && return 1

    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) _MLM_REPORT_COMPLETE=zsh_complete mlm-report)}")

    for type key descr in ${response}; do
        if [[ "$type" == "plain" ]]; then
            if [[ "$descr" == "_" ]]; then
                completions+=("$key")
            else
                completions_with_descriptions+=("$key":"$descr")
            fi
        elif [[ "$type" == "dir" ]]; then
            _path_files -/
        elif [[ "$type" == "file" ]]; then
            _path_files -f
        fi
    done

    if [ -n "$completions_with_descriptions" ]; then
        _describe -V unsorted completions_with_descriptions -U
    fi

    if [ -n "$completions" ]; then
        compadd -U -V unsorted -a completions
    fi
}

_mlm_sample_completion() {
    local -a completions
    local -a completions_with_descriptions
    local -a response
    (( ! $+commands[mlm-sample] )) && return 1

    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) _MLM_SAMPLE_COMPLETE=zsh_complete mlm-sample)}")

    for type key descr in ${response}; do
        if [[ "$type" == "plain" ]]; then
            if [[ "$descr" == "_" ]]; then
                completions+=("$key")
            else
                completions_with_descriptions+=("$key":"$descr")
            fi
        elif [[ "$type" == "dir" ]]; then
            _path_files -/
        elif [[ "$type" == "file" ]]; then
            _path_files -f
        fi
    done

    if [ -n "$completions_with_descriptions" ]; then
        _describe -V unsorted completions_with_descriptions -U
    fi

    if [ -n "$completions" ]; then
        compadd -U -V unsorted -a completions
    fi
}

_mlm_tokens_completion() {
    local -a completions
    local -a completions_with_descriptions
    local -a response
    (( ! $+commands[mlm-tokens] )) && return 1

    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) _MLM_TOKENS_COMPLETE=zsh_complete mlm-tokens)}")

    for type key descr in ${response}; do
        if [[ "$type" == "plain" ]]; then
            if [[ "$descr" == "_" ]]; then
                completions+=("$key")
            else
                completions_with_descriptions+=("$key":"$descr")
            fi
        elif [[ "$type" == "dir" ]]; then
            _path_files -/
        elif [[ "$type" == "file" ]]; then
            _path_files -f
        fi
    done

    if [ -n "$completions_with_descriptions" ]; then
        _describe -V unsorted completions_with_descriptions -U
    fi

    if [ -n "$completions" ]; then
        compadd -U -V unsorted -a completions
    fi
}

_mlm_traps_completion() {
    local -a completions
    local -a completions_with_descriptions
    local -a response
    (( ! $+commands[mlm-traps] )) && return 1

    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) _MLM_TRAPS_COMPLETE=zsh_complete mlm-traps)}")

    for type key descr in ${response}; do
        if [[ "$type" == "plain" ]]; then
            if [[ "$descr" == "_" ]]; then
                completions+=("$key")
            else
                completions_with_descriptions+=("$key":"$descr")
            fi
        elif [[ "$type" == "dir" ]]; then
            _path_files -/
        elif [[ "$type" == "file" ]]; then
            _path_files -f
        fi
    done

    if [ -n "$completions_with_descriptions" ]; then
        _describe -V unsorted completions_with_descriptions -U
    fi

    if [ -n "$completions" ]; then
        compadd -U -V unsorted -a completions
    fi
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    case $service in
        mlm-basins) _mlm_basins_completion "$@" ;;
        mlm-couple) _mlm_couple_completion "$@" ;;
        mlm-drift) _mlm_drift_completion "$@" ;;
        mlm-embed) _mlm_embed_completion "$@" ;;
        mlm-exact) _mlm_exact_completion "$@" ;;
        mlm-influence) _mlm_influence_completion "$@" ;;
        mlm-plot) _mlm_plot_completion "$@" ;;
        mlm-rect) _mlm_rect_completion "$@" ;;
        mlm-report) _mlm_report_completion "$@" ;;
        mlm-sample) _mlm_sample_completion "$@" ;;
        mlm-tokens) _mlm_tokens_completion "$@" ;;
        mlm-traps) _mlm_traps_completion "$@" ;;
    esac
else
    compdef _mlm_basins_completion mlm-basins
    compdef _mlm_couple_completion mlm-couple
    compdef _mlm_drift_completion mlm-drift
    compdef _mlm_embed_completion mlm-embed
    compdef _mlm_exact_completion mlm-exact
    compdef _mlm_influence_completion mlm-influence
    compdef _mlm_plot_completion mlm-plot
    compdef _mlm_rect_completion mlm-rect
    compdef _mlm_report_completion mlm-report
    compdef _mlm_sample_completion mlm-sample
    compdef _mlm_tokens_completion mlm-tokens
    compdef _mlm_traps_completion mlm-traps
fi
