"""python -m mlmglauber: the umbrella command `mlm`."""

from mlmglauber.commands.umbrella.command import main

if __name__ == "__main__":
    main()
