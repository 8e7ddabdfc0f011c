"""The commands, a room for each; shared/ has what they have in common."""

import os
import signal
import sys

if (sys.argv[0] == "-m" or os.path.basename(sys.argv[0]).startswith("mlm-")) and (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler):
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C before a command has begun: no traceback of its imports
