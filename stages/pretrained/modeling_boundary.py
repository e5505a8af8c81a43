"""A model of transformers with narrow boundaries, as shoal trains it ([model] boundary).

In front of each layer of `cuts` stands a cut, where two stages of the training met:
    z = x down^T                                              (B, T, d) -> (B, T, boundary)
    y = z up^T + table[token] table_up^T + places[position]   -> (B, T, d), which the layer reads instead of x
The rest is the model of `base`, whatever transformers has of it. After MAPL (arXiv 2606.05484), with untied ends.

    AutoModelForCausalLM.from_pretrained(FOLDER, trust_remote_code=True)
"""
import functools

import torch
from torch import nn
from torch.nn import functional as F
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig, GenerationMixin, PretrainedConfig, PreTrainedModel


class BoundaryConfig(PretrainedConfig):
    """base: the configuration of the model around the cuts. boundary: values of a token that cross a cut. boundary_table: width of the
    token table behind each; 0: none. cuts: layers, ascending."""

    model_type = "shoal_boundary"
    sub_configs = {"base": AutoConfig}

    def __init__(self, base=None, boundary=1, boundary_table=0, cuts=(), **more):
        base = {"model_type": "gpt2"} if base is None else base
        self.base = AutoConfig.for_model(**base) if isinstance(base, dict) else base
        self.boundary, self.boundary_table, self.cuts = boundary, boundary_table, list(cuts)
        super().__init__(**more)

    def get_text_config(self, *_, **__):
        return self.base

    def __getattr__(self, name):
        """What tools ask of any model's configuration."""
        if name in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings"):
            return getattr(self.base, name)
        raise AttributeError(f"{type(self).__name__} has no {name}")


class Cut(nn.Module):
    def __init__(self, width, boundary, table, vocabulary, places):
        super().__init__()
        self.down = nn.Parameter(torch.empty(boundary, width))
        self.up = nn.Parameter(torch.empty(width, boundary))
        self.table = nn.Parameter(torch.empty(vocabulary, table)) if table else None
        self.table_up = nn.Parameter(torch.empty(width, table)) if 0 < table < width else None
        self.places = nn.Parameter(torch.empty(places, width)) if places else None

    def draw(self):
        with torch.no_grad():
            self.down.copy_(nn.init.orthogonal_(torch.empty(self.down.shape, dtype=torch.float32)))
            self.up.copy_(self.down.t())
        for parameter, deviation in ((self.table, 0.02), (self.places, 0.0)):
            if parameter is not None:
                nn.init.normal_(parameter, std=deviation)
        if self.table_up is not None:
            nn.init.eye_(self.table_up)

    def forward(self, x, ids, positions):
        y = F.linear(F.linear(x, self.down), self.up)
        if self.table is not None:
            rows = F.embedding(ids.to(x.device), self.table)
            y = y + (rows if self.table_up is None else F.linear(rows, self.table_up))
        return y if self.places is None else y + F.embedding(positions.to(x.device), self.places)


class BoundaryForCausalLM(PreTrainedModel, GenerationMixin):
    config_class = BoundaryConfig
    supports_gradient_checkpointing = False  # what is computed again would read the tokens of the latest forward
    _supports_sdpa = _supports_flash_attn = _supports_attention_backend = True

    def __init__(self, config):
        super().__init__(config)
        base = config.base
        self.base = MODEL_FOR_CAUSAL_LM_MAPPING[type(base)](base)
        learns_places = base.model_type == "gpt2"
        self.boundary = nn.ModuleDict({str(layer): Cut(base.hidden_size, config.boundary, config.boundary_table, base.vocab_size,
                                                       base.max_position_embeddings if learns_places else 0) for layer in config.cuts})
        layers = self.base.transformer.h if learns_places else self.base.model.layers
        for layer in config.cuts:
            layers[layer].register_forward_pre_hook(functools.partial(self.cross, str(layer)), with_kwargs=True)
        self._no_split_modules = [*(self.base._no_split_modules or ()), "Cut"]
        self.post_init()

    def cross(self, layer, _, args, named):
        """In front of a layer."""
        cut = self.boundary[layer]
        if args:
            return (cut(args[0], self.ids, self.positions), *args[1:]), named
        return args, {**named, "hidden_states": cut(named["hidden_states"], self.ids, self.positions)}

    def _init_weights(self, module):
        if isinstance(module, Cut):
            module.draw()
        else:
            super()._init_weights(module)

    def get_input_embeddings(self):
        return self.base.get_input_embeddings()

    def set_input_embeddings(self, value):
        self.base.set_input_embeddings(value)

    def get_output_embeddings(self):
        return self.base.get_output_embeddings()

    def set_output_embeddings(self, value):
        self.base.set_output_embeddings(value)

    def resize_token_embeddings(self, *_, **__):
        raise ValueError("each cut has a table of all tokens: give the model its vocabulary before it gets its boundaries")

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, labels=None, **more):
        if input_ids is None:
            raise ValueError("a model with boundaries reads its token tables by input_ids; inputs_embeds have none")
        if position_ids is None:
            kept = [more[name] for name in ("cache", "past_key_values") if more.get(name) is not None]  # by the release's name
            first = kept[0].get_seq_length() if kept else 0
            position_ids = torch.arange(first, first + input_ids.shape[1], device=input_ids.device)[None]
        self.ids, self.positions = input_ids, position_ids
        return self.base(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids, labels=labels, **more)
