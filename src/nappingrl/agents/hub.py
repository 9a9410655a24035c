"""Agents of the Hugging Face Hub, such as hf:sb3/ppo-CartPole-v1.

The name is hf:OWNER/NAME, or hf:OWNER/NAME/FILE.zip where the file is not called NAME.zip. The zip is read as any
other: its pickles are never executed. Only a name that the user gives starts a download; a name in a file, such as the
manifest of a run, is looked up in the local cache.
"""

import re
from pathlib import Path
from typing import Any

from nappingrl.errors import BadAgentError, import_extra, shown

PREFIX = "hf:"
NORMALISERS = ("vec_normalize.pkl", "vecnormalize.pkl")
"""Where repositories of the RL Zoo keep the statistics of observations."""
_NAME = re.compile(r"hf:([\w.-]+/[\w.-]+)(?:/([\w./-]+\.zip))?")


def is_hub_name(model: Any) -> bool:
    """Whether this names an agent of the Hub."""
    return isinstance(model, str) and model.startswith(PREFIX)


def fetch(name: str, may_download: bool) -> tuple[Path, Path | None]:
    """The zip of an agent in the local cache, and the statistics of its observations, if it has any."""
    match = _NAME.fullmatch(name)
    if match is None or ".." in name:
        raise BadAgentError(f"'{shown(name)}' is not of the form hf:OWNER/NAME or hf:OWNER/NAME/FILE.zip")
    hub = import_extra("huggingface_hub", f"agent {name}", "hub")
    repository, file = match[1], match[2] or f"{match[1].split('/')[1]}.zip"
    found = _find(hub, repository, file, may_download)
    if isinstance(found, Exception):
        why = "" if may_download else ' (a file starts no download: get it first with nappingrl.load_agent("hf:..."))'
        raise BadAgentError(f"agent {name}: {file} cannot be fetched{why}: {shown(str(found), 200)}")
    statistics = (_find(hub, repository, one, may_download) for one in NORMALISERS)
    return found, next((one for one in statistics if isinstance(one, Path)), None)


def _find(hub: Any, repository: str, file: str, may_download: bool) -> Path | Exception:
    """A file of a repository in the local cache, or why it is not there."""
    try:
        return Path(hub.hf_hub_download(repository, file, local_files_only=not may_download))
    except (OSError, ValueError) as error:  # all errors of the Hub are one of these
        return error
