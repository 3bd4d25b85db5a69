"""The promises at scale: `make torture`, or `PYTHONPATH=tests:src python -m torture [SECTION...]`."""
