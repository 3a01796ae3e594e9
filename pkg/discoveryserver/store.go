package discoveryserver

import (
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/issuer"
)

// store contains the documents that are served, by the paths of their issuers. Secrets with documents that are not valid are remembered with the
// reason, which is logged once.
type store struct {
	log    logr.Logger
	report func(served, invalid int)

	mu      sync.RWMutex
	byPath  map[string]issuer.Documents
	paths   map[string]string // by the name of the Secret
	invalid map[string]string
}

func newStore(log logr.Logger, report func(served, invalid int)) *store {
	return &store{log: log, report: report, byPath: map[string]issuer.Documents{}, paths: map[string]string{}, invalid: map[string]string{}}
}

// handler returns the functions that keep the store equal to the Secrets of an informer.
func (s *store) handler() toolscache.ResourceEventHandler {
	set := func(object any) {
		if secret, ok := object.(*corev1.Secret); ok {
			s.set(secret)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: set, UpdateFunc: func(_, object any) { set(object) },
		DeleteFunc: func(object any) {
			if gone, missed := object.(toolscache.DeletedFinalStateUnknown); missed {
				object = gone.Obj
			}
			if secret, ok := object.(client.Object); ok {
				s.remove(secret.GetName())
			}
		},
	}
}

// set takes over the documents of a Secret. If they are not valid, none are served: the previous ones may have keys that are not accepted any more.
func (s *store) set(secret *corev1.Secret) {
	documents, path, err := issuer.OfSecret(secret)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if s.invalid[secret.Name] != err.Error() {
			s.log.Error(err, "The documents of an issuer are not served", "secret", secret.Name)
		}
		s.drop(secret.Name)
		s.invalid[secret.Name] = err.Error()
	} else {
		s.drop(secret.Name)
		s.byPath[path], s.paths[secret.Name] = documents, path
	}
	s.report(len(s.byPath), len(s.invalid))
}

func (s *store) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(name)
	s.report(len(s.byPath), len(s.invalid))
}

// drop forgets a Secret. The lock must be held.
func (s *store) drop(name string) {
	delete(s.byPath, s.paths[name])
	delete(s.paths, name)
	delete(s.invalid, name)
}

// find returns the documents of the issuer with a path.
func (s *store) find(path string) (issuer.Documents, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	documents, found := s.byPath[path]
	return documents, found
}
