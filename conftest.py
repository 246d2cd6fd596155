"""Tests compile afresh, whatever earlier runs left on the disk; those of the disk cache turn it on."""
import os

os.environ["JITAD_DISK_CACHE"] = "0"
