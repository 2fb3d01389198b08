"""One model server of a job spec."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from batchrank.spec.fields import Number, Switch, Variable


class EndpointSpec(BaseModel):
    """An `[[endpoint]]` of a job spec; what is left out is as for the whole job."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: str | None = Field(default=None, description="Its address.")
    model: str | None = Field(default=None, description="Its own name for the model.")
    api_key_env: Variable | None = Field(default=None, description="Variable with its API key.")
    weight: Number = Field(
        default=1.0,
        gt=0,
        allow_inf_nan=False,
        description="Its share of the calls while servers have room, and of concurrency.",
    )
    equal: Switch = Field(
        default=False, description="Take its model for the others' whatever it discloses."
    )
