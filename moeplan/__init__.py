"""moeplan: may this mixture-of-experts checkpoint serve this workload on this hardware with this runtime?"""
