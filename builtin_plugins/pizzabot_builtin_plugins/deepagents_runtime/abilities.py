"""What a model can do, as far as the provider's description and the model object itself tell."""

from __future__ import annotations

from pizzabot_hookspecs.agent_runtimes import ChosenModel


def calls_tools(model: ChosenModel) -> bool:
    """Whether the model is offered tools: unless it is described as unable, or its class cannot be handed any.

    LangChain's base class raises `NotImplementedError` where a model does not say how tools are bound to it; a turn
    would fail of it, before anything is said.
    """
    if model.descriptor.supports_tools is False:
        return False
    from langchain_core.language_models import BaseChatModel

    return type(model.chat).bind_tools is not BaseChatModel.bind_tools
