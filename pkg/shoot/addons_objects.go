package shoot

import (
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/component/kubernetesdashboard"
	"github.com/trellis-k8s/trellis/pkg/component/nginxingress"
)

// shootImages sets the references of images that run in the shoot, by their names.
func (in Inputs) shootImages(wanted map[string]*string) error {
	for name, into := range wanted {
		image, err := in.shootImage(name)
		if err != nil {
			return err
		}
		*into = image
	}
	return nil
}

func (in Inputs) dashboard() ([]client.Object, error) {
	values := kubernetesdashboard.Values{
		AuthenticationMode: ptr.Deref(in.Shoot.Spec.Addons.KubernetesDashboard.AuthenticationMode, corev1beta1.KubernetesDashboardAuthModeToken),
		ServerHost:         in.serverHostForPods(), VerticalPodAutoscaler: in.scales(),
	}
	err := in.shootImages(map[string]*string{kubernetesdashboard.Image: &values.Image, kubernetesdashboard.ImageScraper: &values.ImageScraper})
	if err != nil {
		return nil, err
	}
	return kubernetesdashboard.Objects(values)
}

func (in Inputs) ingress() ([]client.Object, error) {
	values := nginxingress.Values{
		Config: *in.Shoot.Spec.Addons.NginxIngress, ServerHost: in.serverHostForPods(), VerticalPodAutoscaler: in.scales(),
	}
	if err := in.shootImages(map[string]*string{nginxingress.Image: &values.Image, nginxingress.ImageBackend: &values.ImageBackend}); err != nil {
		return nil, err
	}
	return nginxingress.Objects(values)
}
