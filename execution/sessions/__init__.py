"""Tools that run elsewhere: outside workers open a session, pull calls, keep them alive and answer."""

KIND = "session"  # the runtime's type, and the `dispatch` of its calls: no worker of ours runs them
