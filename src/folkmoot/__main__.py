"""`python -m folkmoot` is the command `folkmoot`."""

from folkmoot.cli.main import main

if __name__ == "__main__":
    main()
