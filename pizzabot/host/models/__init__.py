"""Models: `<use>:<model>` to a chat model, through the provider that the configuration names."""
