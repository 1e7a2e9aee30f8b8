"""Ready targets: what already speaks ETags or SQL becomes a target by configuration alone.

`python -m countersign_target.ready.etag FILE` and `…ready.postgres FILE` are processes of their
own, on the kit. docs/targets.md has the keys of the files, and the limits.
"""
