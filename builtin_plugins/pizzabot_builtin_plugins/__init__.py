"""The plugins that ship with pizzabot, one package each. The kernel's table of strings names them."""
