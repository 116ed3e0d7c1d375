"""The contract between moeplan and its runtime plugins, and the host that calls plugins one by one."""
