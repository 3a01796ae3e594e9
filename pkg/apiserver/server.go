// Package apiserver is the API server of the garden. It serves the groups of pkg/apis/served behind the aggregator of a
// kube-apiserver.
package apiserver

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apiserver/core"
	"github.com/trellis-k8s/trellis/pkg/apiserver/operations"
	"github.com/trellis-k8s/trellis/pkg/apiserver/registry"
	"github.com/trellis-k8s/trellis/pkg/apiserver/security"
	"github.com/trellis-k8s/trellis/pkg/apiserver/seedmanagement"
	"github.com/trellis-k8s/trellis/pkg/apiserver/settings"
	"github.com/trellis-k8s/trellis/pkg/apiserver/workloadidentity"
	gardenopenapi "github.com/trellis-k8s/trellis/pkg/openapi"
)

// Server is an API server that is ready to run.
type Server struct {
	generic *server.GenericAPIServer
}

// Run serves until the context ends, and then waits for running requests.
func (s *Server) Run(ctx context.Context) error {
	return s.generic.PrepareRun().RunWithContext(ctx)
}

// New sets up an API server. The version is shown to clients. New fails if the options are invalid, or if etcd or the
// kube-apiserver of the garden cannot be reached.
func (o *Options) New(version string) (*Server, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	config, err := o.config(version)
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(kubeConnection(config))
	if err != nil {
		return nil, fmt.Errorf("connect to the garden: %w", err)
	}
	kinds, err := o.kinds(config, kube)
	if err != nil {
		return nil, err
	}
	generic, err := config.Complete().New("gardener-apiserver", server.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("set up the API server: %w", err)
	}
	if err := o.install(generic, kinds, config); err != nil {
		return nil, err
	}
	if err := addHooks(generic, kube, o.ClusterIdentity); err != nil {
		return nil, err
	}
	return &Server{generic: generic}, nil
}

func (o *Options) complete() error {
	if err := o.ServerRun.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("set the feature gates: %w", err)
	}
	if err := o.ServerRun.Complete(); err != nil {
		return fmt.Errorf("complete the options: %w", err)
	}
	return o.Validate()
}

// config returns the configuration of the generic API server. Its OpenAPI names come from a scheme without the internal
// versions. These have the same Go types, and would otherwise appear as versions that clients can use.
func (o *Options) config(version string) (*server.RecommendedConfig, error) {
	external := runtime.NewScheme()
	if err := addExternal.AddToScheme(external); err != nil {
		return nil, fmt.Errorf("set up the API types: %w", err)
	}
	namer := openapi.NewDefinitionNamer(external)
	config := server.NewRecommendedConfig(o.codecs)
	config.OpenAPIConfig = server.DefaultOpenAPIConfig(gardenopenapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config = server.DefaultOpenAPIV3Config(gardenopenapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIConfig.Info.Title, config.OpenAPIV3Config.Info.Title = "Gardener", "Gardener"
	config.OpenAPIConfig.Info.Version, config.OpenAPIV3Config.Info.Version = version, version
	if err := o.ServerRun.ApplyTo(&config.Config); err != nil {
		return nil, fmt.Errorf("apply the options: %w", err)
	}
	if err := o.Recommended.ApplyTo(config); err != nil {
		return nil, fmt.Errorf("apply the options: %w", err)
	}
	return config, nil
}

// group is an API group with its kinds by version.
type group struct {
	name  string
	kinds map[string][]registry.Served
}

func (o *Options) kinds(config *server.RecommendedConfig, kube kubernetes.Interface) ([]group, error) {
	garden, err := newLoopbackClient(config.LoopbackClientConfig)
	if err != nil {
		return nil, err
	}
	tokens := security.Tokens{
		Garden: garden, MinExpiration: o.WorkloadIdentity.MinExpiration, MaxExpiration: o.WorkloadIdentity.MaxExpiration, Now: time.Now,
	}
	if o.WorkloadIdentity.SigningKeyFile != "" {
		key, err := os.ReadFile(o.WorkloadIdentity.SigningKeyFile)
		if err != nil {
			return nil, fmt.Errorf("read --workload-identity-signing-key-file: %w", err)
		}
		if tokens.Signer, err = workloadidentity.NewSigner(o.WorkloadIdentity.Issuer, key); err != nil {
			return nil, err
		}
	}
	claims, err := o.newClaims(config, garden, kube)
	if err != nil {
		return nil, err
	}
	deployments := core.ControllerDeployments()
	coreKinds := core.Kinds(core.Dependencies{Now: time.Now, RotationInterval: o.CredentialsRotationInterval, Domains: claims, Kubeconfigs: core.Kubeconfigs{
		Garden: garden, Kubernetes: kube, Authorizer: config.Authorization.Authorizer,
		AdminMaxExpiration: o.AdminKubeconfigMaxExpiration, ViewerMaxExpiration: o.ViewerKubeconfigMaxExpiration, Now: time.Now,
	}})
	return []group{
		{gardencorev1beta1.GroupName, map[string][]registry.Served{
			gardencorev1beta1.SchemeGroupVersion.Version: append(coreKinds, deployments),
			gardencorev1.SchemeGroupVersion.Version:      {deployments},
		}},
		{operationsv1alpha1.GroupName, map[string][]registry.Served{operationsv1alpha1.SchemeGroupVersion.Version: operations.Kinds(time.Now)}},
		{securityv1alpha1.GroupName, map[string][]registry.Served{securityv1alpha1.SchemeGroupVersion.Version: security.Kinds(tokens)}},
		{seedmanagementv1alpha1.GroupName, map[string][]registry.Served{
			seedmanagementv1alpha1.SchemeGroupVersion.Version: seedmanagement.Kinds(),
		}},
		{settingsv1alpha1.GroupName, map[string][]registry.Served{settingsv1alpha1.SchemeGroupVersion.Version: settings.Kinds()}},
	}, nil
}

// install serves all groups. A kind with several versions has one storage.
func (o *Options) install(generic *server.GenericAPIServer, groups []group, config *server.RecommendedConfig) error {
	stored := map[registry.Served]map[string]rest.Storage{}
	for _, group := range groups {
		info := server.NewDefaultAPIGroupInfo(group.name, o.scheme, runtime.NewParameterCodec(o.scheme), o.codecs)
		info.NegotiatedSerializer = jsonSerializer{o.codecs, o.scheme}
		for version, kinds := range group.kinds {
			storages := map[string]rest.Storage{}
			for _, kind := range kinds {
				if stored[kind] == nil {
					found, err := kind.Storages(o.scheme, config.RESTOptionsGetter)
					if err != nil {
						return err
					}
					stored[kind] = found
					o.stored.add(group.name, found)
				}
				for name, storage := range stored[kind] {
					storages[name] = storage
				}
			}
			info.VersionedResourcesStorageMap[version] = storages
		}
		if err := generic.InstallAPIGroup(&info); err != nil {
			return fmt.Errorf("install the API group %s: %w", group.name, err)
		}
	}
	return nil
}
