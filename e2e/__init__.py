"""The whole path against a real engine on this machine's CPUs: ``make e2e``."""
