from rest_framework.routers import SimpleRouter

from execution.api.views import CallViewSet

router = SimpleRouter(use_regex_path=False)
router.register("calls", CallViewSet, basename="call")

urlpatterns = router.urls
