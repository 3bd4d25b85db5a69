# The public names of germane.plans, imported when they are first used; see `germane.exports`.

from germane.model.plan import FrameChoice as FrameChoice
from germane.model.plan import KindPriority as KindPriority
from germane.model.plan import Style as Style
from germane.model.plan import TaskContext as TaskContext
from germane.plans.scoped import Profile as Profile
from germane.plans.scoped import ScopedPlan as ScopedPlan

__all__: list[str]
