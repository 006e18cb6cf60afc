"""The routes, a file per noun. Each checks who calls in its dependency, maps, calls one service, and maps back."""
