"""`python -m nappingrl` is `napping`."""

from nappingrl.cli import main

if __name__ == "__main__":
    main()
