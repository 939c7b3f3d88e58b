"""Generated from proto/nephila/v1/rules.proto by tools/protogen.py; do not edit."""

import msgspec



class ParseRule(msgspec.Struct, array_like=True, gc=False):
    """What is taken from the pages of a site: the whole desired state of a rule. Topic `rules` (compacted by
    name).
    """

    name: str = ""
    # The ParseRule document as JSON; docs/parserule.schema.json.
    document: str = ""
    # Version of its spec: the declared number, or a hash of the spec from 2^31 on.
    version: int = 0
    deleted: bool = False
