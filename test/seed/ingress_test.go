package seed

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/nginxingress"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/test/kit"
)

// ingress restarts gardenlet so that the Seed has an ingress controller with a load balancer. The DNS record of its domain follows the address, and is made
// again if its type changes. It returns the function that stops gardenlet.
func (w *world) ingress(name string) (stop func()) {
	w.Helper()
	credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "dns"}, Data: map[string][]byte{"token": []byte("given")}}
	w.create(w.garden, credentials)
	seed := w.get(name)
	kit.Change(w, w.garden, seed, func() {
		metav1.SetMetaDataAnnotation(&seed.ObjectMeta, constants.AnnotationSeedExposure, string(exposure.LoadBalancer))
	})
	_, _, stop = w.gardenletWith(name, clock.RealClock{}, func(config *gardenletv1alpha1.GardenletConfiguration) {
		config.FeatureGates = map[string]bool{nginxingress.GateOfSeed: false}
	})
	w.eventuallyWaits(name, "the Service garden/nginx-ingress-controller, which serves the domain of spec.ingress, has no address yet")
	first := w.balanced(corev1.LoadBalancerIngress{IP: "192.0.2.7"}, "A 192.0.2.7")
	w.eventually(name, corev1beta1.LastOperationStateSucceeded, "", corev1beta1.ConditionTrue)
	if err := w.seed.Get(w.Context(), client.ObjectKey{Name: nginxingress.Class}, &networkingv1.IngressClass{}); err != nil {
		w.Errorf("the class of Ingresses: %v", err)
	}
	if moved := w.balanced(corev1.LoadBalancerIngress{IP: "192.0.2.8"}, "A 192.0.2.8"); moved.UID != first.UID {
		w.Error("a record was made again because its address changed")
	}
	if replaced := w.balanced(corev1.LoadBalancerIngress{Hostname: "lb.example.org"}, "CNAME lb.example.org"); replaced.UID == first.UID {
		w.Error("a record has another type")
	}
	kit.Change(w, w.garden, credentials, func() { credentials.Data["token"] = []byte("new") })
	kit.Eventually(w, "the record has the new credentials", func() string {
		var secret corev1.Secret
		if err := w.seed.Get(w.Context(), client.ObjectKey{Namespace: constants.GardenNamespace, Name: "seed-ingress"}, &secret); err != nil {
			return err.Error()
		}
		if string(secret.Data["token"]) != "new" {
			return "the Secret is old"
		}
		return ""
	})
	w.eventually(name, corev1beta1.LastOperationStateSucceeded, "", corev1beta1.ConditionTrue)
	return stop
}

// balanced gives the ingress controller's load balancer an address, and waits for the DNS record with the type and value.
func (w *world) balanced(address corev1.LoadBalancerIngress, want string) *extensionsv1alpha1.DNSRecord {
	w.Helper()
	service := &corev1.Service{}
	kit.EventuallyTrue(w, "the Service of the ingress controller exists", func() bool {
		return w.seed.Get(w.Context(), client.ObjectKey{Namespace: constants.GardenNamespace, Name: nginxingress.Service}, service) == nil
	})
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{address}
	kit.WriteStatus(w, w.seed, service)
	record := &extensionsv1alpha1.DNSRecord{}
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, "the DNS record is "+want, func() string {
		err := w.seed.Get(w.Context(), client.ObjectKey{Namespace: constants.GardenNamespace, Name: "seed-ingress"}, record)
		if apierrors.IsNotFound(err) {
			return "it does not exist"
		}
		if got := fmt.Sprintf("%s %s", record.Spec.RecordType, strings.Join(record.Spec.Values, ",")); err != nil || got != want || record.DeletionTimestamp != nil {
			return fmt.Sprintf("it is %s, %v", got, err)
		}
		return ""
	})
	return record
}
