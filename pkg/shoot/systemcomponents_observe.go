package shoot

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// proxiesAgain is how often gardenlet checks whether nodes still have a previous version of kube-proxy.
const proxiesAgain = 30 * time.Second

// observeProxies sets which previous versions of kube-proxy no node has any more. It asks the API server of the Shoot only while there are
// such versions. If that does not answer, they are kept.
func (p *pass) observeProxies(ctx context.Context) {
	names := p.in.oldProxyBundles()
	if len(names) == 0 || p.in.hibernated() || p.in.Deleting || !p.in.NamespaceExists {
		return
	}
	p.Wake.In(proxiesAgain)
	shoot, err := p.connect(p.in)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Previous versions of kube-proxy are kept", "why", err.Error())
		return
	}
	unused := map[string]bool{}
	for _, name := range names {
		used, err := hasNode(ctx, shoot, strings.TrimPrefix(name, prefixProxy))
		if err != nil {
			log.FromContext(ctx).V(1).Info("A previous version of kube-proxy is kept", "bundle", name, "why", err.Error())
			continue
		}
		unused[name] = !used
	}
	p.in.ProxiesUnused = unused
}

// hasNode reports whether a node has a pool and version, which are given as in the names of bundles: the version is what follows the last
// "-v".
func hasNode(ctx context.Context, shoot client.Reader, suffix string) (bool, error) {
	at := strings.LastIndex(suffix, "-v")
	if at < 0 {
		return true, nil
	}
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	err := shoot.List(ctx, nodes, client.Limit(1), client.MatchingLabels{
		constants.LabelWorkerPool: suffix[:at], constants.LabelWorkerKubernetesVersion: suffix[at+len("-v"):],
	})
	return len(nodes.Items) > 0, err
}
