"""`python -m germane`: the command line."""

from germane.integrations.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
