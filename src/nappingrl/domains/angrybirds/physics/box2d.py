"""Imports Box2D, the only module to do so: the import warns, and crashes if warnings are errors."""

import warnings

from nappingrl.errors import MissingExtraError

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import Box2D
except ImportError as error:
    raise MissingExtraError('angrybirds needs Box2D and pillow: pip install "nappingrl[birds]"') from error

b2World = Box2D.b2World  # noqa: N816
b2CircleShape = Box2D.b2CircleShape  # noqa: N816
b2PolygonShape = Box2D.b2PolygonShape  # noqa: N816
b2ContactListener = Box2D.b2ContactListener  # noqa: N816
