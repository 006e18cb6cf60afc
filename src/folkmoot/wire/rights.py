"""Roles and rights by their names. Deliberately absent: which role has which rights."""

from enum import StrEnum


class Right(StrEnum):
    """What a caller may do; as a scope, what a key is narrowed to."""

    READ = "read"
    MANAGE_OWN_KEYS = "manage_own_keys"
    TAKE_PART = "take_part"
    APPROVE = "approve"
    START = "start"
    STOP = "stop"
    OPERATE = "operate"
    PUBLISH = "publish"
    MANAGE_CONNECTORS = "manage_connectors"
    MANAGE_SECRETS = "manage_secrets"
    MANAGE_KEYS = "manage_keys"
    MANAGE_USERS = "manage_users"
    MANAGE_WEBHOOKS = "manage_webhooks"
    MANAGE_BUDGETS = "manage_budgets"
    READ_AUDIT = "read_audit"
    MANAGE_OWNERS = "manage_owners"


class Role(StrEnum):
    """What a user is in a tenant, from the least to the most."""

    VIEWER = "viewer"
    APPROVER = "approver"
    OPERATOR = "operator"
    DEVELOPER = "developer"
    ADMIN = "admin"
    OWNER = "owner"
