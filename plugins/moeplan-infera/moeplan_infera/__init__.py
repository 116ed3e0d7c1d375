"""What Infera's operator, overlay and preflight are: shared by moeplan's plugins for AMD Instinct."""
