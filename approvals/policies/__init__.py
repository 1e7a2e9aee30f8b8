"""Policies: which plans need whose approval, and how it has to be given (B-6, B-7, B-11).

`conditions` asks CEL, `facts` is what a condition may read, `judging` adds up what the matching
policies demand, `quorum` counts distinct people, `tallies` holds the recorded approvals against it.
"""
