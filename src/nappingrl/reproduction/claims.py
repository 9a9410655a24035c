"""The paper's quantitative claims on all domains."""

from nappingrl.reproduction import claims_angrybirds, claims_cartpole, claims_crossroad, claims_mountaincar
from nappingrl.reproduction.judging import Claim

CLAIMS: list[Claim] = [
    *claims_cartpole.CLAIMS,
    *claims_mountaincar.CLAIMS,
    *claims_crossroad.CLAIMS,
    *claims_angrybirds.CLAIMS,
]
