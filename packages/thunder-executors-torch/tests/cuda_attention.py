"""A stand-in for PyTorch's attention kernels of CUDA, on the CPU: what they refuse, it refuses.

Values are those of attention as it is composed of matrix products. Dropout is left out: no number is drawn here.
"""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
FLASH, EFFICIENT, CUDNN = 1, 2, 3  # as in torch.nn.attention.SDPBackend


def composed(query, key, value, mask, is_causal, scale):
    with sdpa_kernel(SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, mask, 0.0, is_causal, scale=scale)


def check(query, key, value, mask, kernel):
    assert query.dtype is key.dtype is value.dtype and query.ndim == 4
    assert kernel == EFFICIENT or query.dtype in (torch.float16, torch.bfloat16)
    for t in (query, key, value):
        assert t.stride(-1) == 1, "rows lie in one piece"
        assert t.shape[:2] == query.shape[:2], "as many keys as queries"
    bits = query.element_size() * 8
    multiple = 8 if kernel != EFFICIENT else 128 // bits
    assert query.shape[3] % multiple == value.shape[3] % multiple == 0, f"widths are no multiples of {multiple}"
    if mask is not None:
        assert mask.dtype is query.dtype and mask.shape == (*query.shape[:3], key.shape[2])
        assert kernel != EFFICIENT or mask.stride(-1) == 1 and not any(s % 8 for s in mask.stride()[:-1]), "alignment"


def scored(query, key, mask, is_causal, scale):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.transpose(-2, -1) * scale
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).tril().logical_not(), -torch.inf)
    return scores if mask is None else scores + mask, scale


def logarithms(query, key, mask, is_causal, scale):
    return torch.logsumexp(scored(query.float(), key.float(), mask, is_causal, scale)[0], -1)


class Kernels(TorchDispatchMode):
    """Answers calls of the kernels; ``asked`` are those that were called."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        answer = ANSWERS.get(function.overloadpacket)
        if answer is None:
            return function(*args, **(kwargs or {}))
        self.asked.append(function.overloadpacket)
        return answer(*args, **(kwargs or {}))


def state(*shape):
    return torch.zeros(shape, dtype=torch.int64)


def flash(query, key, value, dropout_p=0.0, is_causal=False, debug=False, *, scale=None):
    check(query, key, value, None, FLASH)
    out = composed(query, key, value, None, is_causal, scale)
    lse = logarithms(query, key, None, is_causal, scale)
    lengths = (query.shape[2], key.shape[2])
    return out, lse, None, None, *lengths, state(2).view(torch.uint64), state().view(torch.uint64), query.new_empty(0)


def efficient(query, key, value, mask, compute_lse, dropout_p=0.0, is_causal=False, *, scale=None):
    check(query, key, value, mask, EFFICIENT)
    lse = logarithms(query, key, mask, is_causal, scale)
    padded = torch.nn.functional.pad(lse, (0, -lse.shape[-1] % 32), value=torch.inf)
    return composed(query, key, value, mask, is_causal, scale), padded, state(), state()


def cudnn(query, key, value, mask, compute_lse, dropout_p=0.0, is_causal=False, debug=False, *, scale=None):
    check(query, key, value, mask, CUDNN)
    lse = logarithms(query, key, mask, is_causal, scale)[..., None]
    out = composed(query, key, value, mask, is_causal, scale)
    return out, lse, None, None, query.shape[2], key.shape[2], state(), state(), None


def gradients(kernel, dy, query, key, value, mask, out, is_causal, scale):
    check(query, key, value, mask, kernel)
    assert dy.shape == out.shape == (*query.shape[:3], value.shape[3]) and dy.dtype is out.dtype
    torch.testing.assert_close(out, composed(query, key, value, mask, is_causal, scale))
    q, k, v, g = (t.double() for t in (query, key, value, dy))
    scores, factor = scored(q, k, mask, is_causal, scale)
    p = torch.softmax(scores, -1)
    dp = g @ v.transpose(-2, -1)
    ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * factor
    return [t.to(query.dtype) for t in (ds @ k, ds.transpose(-2, -1) @ q, p.transpose(-2, -1) @ g)]


def flash_backward(dy, q, k, v, out, lse, cum_q, cum_k, max_q, max_k, p, is_causal, seed, offset, *, scale=None):
    assert (max_q, max_k) == (q.shape[2], k.shape[2]) and cum_q is cum_k is None
    torch.testing.assert_close(lse, logarithms(q, k, None, is_causal, scale))
    return gradients(FLASH, dy, q, k, v, None, out, is_causal, scale)


def efficient_backward(dy, q, k, v, mask, out, lse, seed, offset, p, wanted, is_causal=False, *, scale=None):
    torch.testing.assert_close(lse[..., : q.shape[2]], logarithms(q, k, mask, is_causal, scale))
    assert list(wanted) == [True, True, True, False]
    return (*gradients(EFFICIENT, dy, q, k, v, mask, out, is_causal, scale), None)


def cudnn_backward(dy, q, k, v, out, lse, seed, offset, mask, cum_q, cum_k, max_q, max_k, p, is_causal, *, scale=None):
    assert (max_q, max_k) == (q.shape[2], k.shape[2]) and cum_q is cum_k is None
    torch.testing.assert_close(lse[..., 0], logarithms(q, k, mask, is_causal, scale))
    return gradients(CUDNN, dy, q, k, v, mask, out, is_causal, scale)


ANSWERS = {
    aten._scaled_dot_product_flash_attention: flash,
    aten._scaled_dot_product_flash_attention_backward: flash_backward,
    aten._scaled_dot_product_efficient_attention: efficient,
    aten._scaled_dot_product_efficient_attention_backward: efficient_backward,
    aten._scaled_dot_product_cudnn_attention: cudnn,
    aten._scaled_dot_product_cudnn_attention_backward: cudnn_backward,
}
