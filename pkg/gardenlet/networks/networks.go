// Package networks checks that the configured networks of a Seed match the cluster. Otherwise, network policies would
// block required connections, and shoots would get overlapping ranges.
package networks

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	// sampled is the number of objects of a kind that are checked.
	sampled = 100
	// annotationCalicoPools on a Pod means that Calico assigns its address from a separate pool.
	annotationCalicoPools = "cni.projectcalico.org/ipv4pools"
	// Keys of the ConfigMap kube-system/shoot-info.
	keyNodes, keyPods, keyServices = "nodeNetwork", "podNetwork", "serviceNetwork"
)

// ErrMismatch reports that the configured networks do not match the cluster.
var ErrMismatch = errors.New("seedConfig.spec.networks does not match the seed cluster")

// Check compares the configured networks with those of the cluster: the ConfigMap kube-system/shoot-info if the seed is a
// shoot, otherwise addresses of a sample of nodes, pods and Services. It returns ErrMismatch with all differences.
func Check(ctx context.Context, seed client.Reader, configured gardencorev1beta1.SeedNetworks) error {
	info := &corev1.ConfigMap{}
	err := seed.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: constants.ShootInfoName}, info)
	if err == nil {
		return mismatch(compare(info.Data, configured))
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read ConfigMap %s/%s of the seed: %w", metav1.NamespaceSystem, constants.ShootInfoName, err)
	}
	var nodes corev1.NodeList
	var pods corev1.PodList
	var services corev1.ServiceList
	for _, list := range []client.ObjectList{&nodes, &pods, &services} {
		if err := seed.List(ctx, list, client.Limit(sampled)); err != nil {
			return fmt.Errorf("read addresses from the seed: %w", err)
		}
	}
	return mismatch(sample(configured, nodes.Items, pods.Items, services.Items))
}

// mismatch returns ErrMismatch with the differences, or nil if there are none.
func mismatch(differences []string) error {
	if len(differences) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrMismatch, strings.Join(differences, "; "))
}

// compare returns the differences between the networks of a shoot and the configured ones.
func compare(info map[string]string, configured gardencorev1beta1.SeedNetworks) []string {
	var differences []string
	add := func(field, key, configured string) {
		if info[key] != configured {
			differences = append(differences, fmt.Sprintf("%s is %s, but %s of ConfigMap %s/%s is %s",
				field, configured, key, metav1.NamespaceSystem, constants.ShootInfoName, info[key]))
		}
	}
	add("pods", keyPods, configured.Pods)
	add("services", keyServices, configured.Services)
	if configured.Nodes != nil && info[keyNodes] != "" {
		add("nodes", keyNodes, *configured.Nodes)
	}
	return differences
}

// sample describes the first object of each kind whose address is not in the configured network.
func sample(configured gardencorev1beta1.SeedNetworks, nodes []corev1.Node, pods []corev1.Pod, services []corev1.Service) []string {
	var differences []string
	add := func(field, cidr string, found []addressed) {
		if difference := outside(field, cidr, found); difference != "" {
			differences = append(differences, difference)
		}
	}
	if configured.Nodes != nil {
		add("nodes", *configured.Nodes, nodeAddresses(nodes))
	}
	add("pods", configured.Pods, podAddresses(pods))
	add("services", configured.Services, serviceAddresses(services))
	return differences
}

// addressed is an object with an address.
type addressed struct{ object, address string }

// outside describes the first address of the same IP family that is not in a network. It is empty if there is none.
func outside(field, cidr string, found []addressed) string {
	network, err := netip.ParsePrefix(cidr)
	if err != nil {
		return fmt.Sprintf("%s: %v", field, err)
	}
	for _, one := range found {
		address, err := netip.ParseAddr(one.address)
		if err != nil || address.Is4() != network.Addr().Is4() || network.Contains(address) {
			continue
		}
		return fmt.Sprintf("%s is %s, but the address of %s is %s", field, cidr, one.object, one.address)
	}
	return ""
}

func nodeAddresses(nodes []corev1.Node) []addressed {
	var found []addressed
	for _, node := range nodes {
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				found = append(found, addressed{"Node " + node.Name, address.Address})
			}
		}
	}
	return found
}

func podAddresses(pods []corev1.Pod) []addressed {
	var found []addressed
	for _, pod := range pods {
		if _, pooled := pod.Annotations[annotationCalicoPools]; pooled || pod.Spec.HostNetwork {
			continue
		}
		for _, ip := range pod.Status.PodIPs {
			found = append(found, addressed{"Pod " + pod.Namespace + "/" + pod.Name, ip.IP})
		}
	}
	return found
}

func serviceAddresses(services []corev1.Service) []addressed {
	var found []addressed
	for _, service := range services {
		if service.Spec.Type != corev1.ServiceTypeClusterIP && service.Spec.Type != "" {
			continue
		}
		for _, ip := range service.Spec.ClusterIPs {
			if ip != corev1.ClusterIPNone {
				found = append(found, addressed{"Service " + service.Namespace + "/" + service.Name, ip})
			}
		}
	}
	return found
}
