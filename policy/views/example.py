"""The policy that someone who has none yet starts from: it says what every part is for."""

EXAMPLE = """\
apiVersion: placet.dev/v1
kind: Policy
spec:
  # The rules stand in order. A matching deny wins wherever it stands; else the first match decides;
  # where no rule matches, the risk does: low and medium run, high asks one person, critical asks two.
  rules:
    - name: small refunds go through
      tools: ["Payments.Refund"]      # Toolkit.Tool, Toolkit.*, or * for every tool
      agents: ["support-bot"]         # leave it out for any agent; groups: [...] likewise
      when: input.amount <= 100.0     # a condition over agent, tool, input, context and now
      effect: allow                   # allow, deny or ask
      limits: {perMinute: 30, perDay: 500}

    - name: what reaches the outside needs a person
      capabilities: [external.side_effect]
      riskAtLeast: high
      effect: ask
      ask: {quorum: 1, decideWithin: 24h, runWithin: 1h}   # approvers: a group, if not everyone who may approve

    - name: nothing critical at night
      riskAtLeast: critical
      when: now.getHours() < 6 || now.getHours() >= 22     # UTC
      effect: deny
"""
