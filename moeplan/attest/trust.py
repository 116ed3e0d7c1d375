"""The keys a policy trusts, and for which roles."""

from __future__ import annotations

from typing import Any

import attrs

from moeplan.errors import InputError, Issue, MoeplanError
from moeplan.model.policy import Policy
from moeplan.model.verified import VerifiedSigner
from moeplan.signing.test_key import TEST_KEY_FINGERPRINTS

__all__ = ["TrustedKeys", "trusted_keys"]


@attrs.frozen(eq=False)
class TrustedKeys:
    """Public keys by fingerprint, with the signer each belongs to."""

    keys: dict[str, Any]
    signers: dict[str, VerifiedSigner]
    uses_test_key: bool


def trusted_keys(policy: Policy) -> TrustedKeys:
    """Return the keys of a policy.

    Raises:
        InputError: a key cannot be read, is not the one its fingerprint names, or is the published test key while
            the policy does not say ``testKeys``.
    """
    from moeplan.signing.keys import fingerprint, load_public_key

    keys: dict[str, Any] = {}
    signers: dict[str, VerifiedSigner] = {}
    issues: list[Issue] = []
    for index, signer in enumerate(policy.signers):
        at = f"$.signers[{index}]"
        try:
            key = load_public_key(signer.public_key.encode("ascii"))
        except MoeplanError as error:
            issues += [attrs.evolve(issue, path=f"{at}.publicKey") for issue in error.issues]
            continue
        found = fingerprint(key)
        if found != signer.fingerprint:
            issues.append(Issue(f"{at}.fingerprint", "fingerprint_mismatch", "not this key's fingerprint", found))
        if found in TEST_KEY_FINGERPRINTS and not policy.test_keys:
            issues.append(
                Issue(
                    f"{at}.publicKey",
                    "test_key",
                    "this is the published test key, whose private half everybody has",
                    "a key of the signer's own",
                    next="a policy for tests and demonstrations may say testKeys: true",
                )
            )
        keys[found] = key
        signers[found] = VerifiedSigner(signer.id, found, signer.roles)
    if issues:
        raise InputError(*issues, source="policy")
    return TrustedKeys(keys, signers, any(found in TEST_KEY_FINGERPRINTS for found in keys))
