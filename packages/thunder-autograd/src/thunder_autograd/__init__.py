"""Machinery of derivatives. Knows no operation: rules stand beside the operations that they are for."""

from thunder_autograd._version import __version__
from thunder_autograd.inner import gradients, written_out
from thunder_autograd.joint import grad_transform_on_trace, wanted_inputs
from thunder_autograd.jvp import Pusher, jvp_transform_on_trace
from thunder_autograd.partition import Decision
from thunder_autograd.programs import ACCUMULATES, ARRIVES, DRAWS_APART, Joint, differentiable_outputs, gradient_trace
from thunder_autograd.registration import (
    VJPDual,
    get_grad,
    put_grad,
    put_grads,
    register_augmented_forward,
    register_backward,
    register_grad,
    rule_of_grad,
)
from thunder_autograd.replay import Replay
from thunder_autograd.rules import ZERO, JvpRule, Pullback, Through, VjpRule, jvp_rule, vjp_rule
from thunder_autograd.split import Split, forward_and_backward, split_into_forward_and_backward
from thunder_autograd.stages import Stage, Stages
from thunder_autograd.traits import Trait, Traits, tensor_slots
from thunder_autograd.variants import differentiable_gradients, specialised_backward

__all__ = [
    "ACCUMULATES", "ARRIVES", "DRAWS_APART", "ZERO", "Decision", "Joint", "JvpRule", "Pullback", "Pusher", "Replay",
    "Split", "Stage", "Stages", "Through", "Trait", "Traits", "VJPDual", "VjpRule", "__version__",
    "differentiable_gradients", "differentiable_outputs", "forward_and_backward", "get_grad", "grad_transform_on_trace",
    "gradient_trace", "gradients", "jvp_rule", "jvp_transform_on_trace", "put_grad", "put_grads",
    "register_augmented_forward", "register_backward", "register_grad", "rule_of_grad", "specialised_backward",
    "split_into_forward_and_backward", "tensor_slots", "vjp_rule", "wanted_inputs", "written_out",
]  # fmt: skip
