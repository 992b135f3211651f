"""gRPC as Tool Contract v1 uses it: one unary method, JSON both ways. Serving is in `service`."""

from execution.grpc.channel import Reply, ask

__all__ = ["METHOD", "Reply", "ask"]

METHOD = "/orloj.tool.v1.ToolService/Execute"
