"""Requests of Kafka's protocol that kafka-python does not have, in the form in which it reads its own.

``ConsumerGroupDescribe`` (KIP-848) describes groups whose broker assigns the partitions. Each class is made of the JSON
file of its name: fields in the order in which they are on the wire, with the versions that have them. To import this
package is enough for kafka-python to know the answers too.
"""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage


class ConsumerGroupDescribeRequest(ApiMessage, load_json=__package__):  # type: ignore[call-arg, misc]
    """Describe groups, asked of the broker that coordinates them."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=__package__):  # type: ignore[call-arg, misc]
    """Each group with its members, or with its error."""


__all__ = ["ConsumerGroupDescribeRequest", "ConsumerGroupDescribeResponse"]
