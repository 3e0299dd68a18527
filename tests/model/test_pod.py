from dataclasses import replace

from muster.model.pod import Pod, share

PODS = [Pod(name="a")] * 3


def test_pods_share_a_field_only_if_all_have_the_same_object() -> None:
    other = replace(PODS[0], spec=replace(PODS[0].spec))

    assert share(PODS[:1], lambda each: each.spec)
    assert share([*PODS, other], lambda each: each.status)
    assert not share([*PODS, other], lambda each: each.status, lambda each: each.spec)
