"""`python -m pizzabot.cli`, the same as the command `pizzabot`."""

import sys

from pizzabot.cli import main

sys.exit(main())
