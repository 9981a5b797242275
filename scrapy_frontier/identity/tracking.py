"""What is known of query parameters by their names alone, as data.

The lists are short on purpose: a name stands here only where it means the same on every site. They
are numbered, because a fetch key depends on them wherever the rule `tracking` is in force.
"""

from __future__ import annotations

from typing import Final

TRACKING_PARAMETERS_VERSION: Final = 1

TRACKING_PARAMETERS: Final = (
    # campaign tagging: Google Analytics, Matomo and its older names, AT Internet, Openstat
    "utm_*",
    "mtm_*",
    "pk_campaign",
    "pk_kwd",
    "pk_source",
    "pk_medium",
    "pk_content",
    "pk_cid",
    "at_campaign",
    "at_medium",
    "_openstat",
    # click identifiers of advertising networks
    "gclid",
    "gclsrc",
    "gbraid",
    "wbraid",
    "dclid",
    "gad_source",
    "gad_campaignid",
    "srsltid",
    "fbclid",
    "fb_action_ids",
    "fb_action_types",
    "msclkid",
    "yclid",
    "ymclid",
    "ysclid",
    "ttclid",
    "twclid",
    "li_fat_id",
    "rdt_cid",
    "epik",
    "ScCid",
    "irclickid",
    "zanpid",
    "wickedid",
    "_branch_match_id",
    # linkers that carry a visitor from one domain to another
    "_ga",
    "_gl",
    "igsh",
    "igshid",
    # mailings
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "_hsenc",
    "_hsmi",
    "__hstc",
    "__hssc",
    "__hsfp",
    "hsCtaTracking",
    "vero_id",
    "vero_conv",
    "oly_anon_id",
    "oly_enc_id",
    "ml_subscriber",
    "ml_subscriber_hash",
)
"""Parameters that tell where a visitor came from, nothing of the page; `*` ends a prefix."""

ORDER_SENSITIVE_PARAMETERS: Final = (
    "sort",
    "sortby",
    "sort_by",
    "order",
    "orderby",
    "order_by",
    "breadcrumb",
    "path[]",
    "sort[]",
    "order[]",
)
"""Parameters of which the first outranks the second where they are repeated."""

CONTENT_PARAMETERS: Final = (
    "id",
    "p",
    "page",
    "page_id",
    "paged",
    "offset",
    "start",
    "limit",
    "q",
    "query",
    "s",
    "search",
    "cat",
    "category",
    "tag",
    "topic",
    "product",
    "product_id",
    "sku",
    "article",
    "item",
    "lang",
    "language",
    "locale",
    "year",
    "month",
    "day",
    "date",
    "title",
    "t",
    "v",
    "view",
    "action",
    "format",
)
"""Parameters that choose what the page shows."""
