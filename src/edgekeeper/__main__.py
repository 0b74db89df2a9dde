"""``python -m edgekeeper`` is the ``edgekeeper`` command."""

from edgekeeper.cli.main import main

if __name__ == "__main__":
    main()
