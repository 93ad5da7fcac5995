"""What a machine boots from: the golden image, the deploy ISO with its seed, and the server that hands both out.

    image.ensure(software, cache)   -> ImageRef      a GPT disk image, built once for its inputs
    iso.build(...)                  -> Path          one machine's UEFI medium; facts hold its digest beforehand
    mirror.ensure(software, cache)  -> MirrorRef     the pinned packages beyond the image, as a flat repository
    server.ensure_running(folder)   -> str           `supernode serve`, started when it does not answer yet

Files under `host/` run on the machine itself from the image's own Python and import nothing but the standard library;
`deploy/` holds the init of the deploy medium.
"""
