"""The pages within a report's one file."""

import base64
import gzip
import re


def packed_pages(text: str) -> dict[str, str]:
    """Each run's page by its folder."""
    found = re.findall(r'<script type="text/plain" data-page="([^"]*)">([^<]*)</script>', text)
    return {name: gzip.decompress(base64.b64decode(data)).decode() for name, data in found}
