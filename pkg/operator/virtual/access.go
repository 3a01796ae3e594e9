// Package virtual connects the operator to the virtual garden. The resource-manager of the virtual garden writes a kubeconfig with a token
// into a Secret and renews the token. This package keeps the token in a file, which the connection reads again.
package virtual

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/operatorconfig/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/restclient"

	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// SecretName is the name of the Secret with the operator's kubeconfig for the virtual garden.
const SecretName = constants.SecretNameGardenerInternal

// ErrNotReady is returned while there is no kubeconfig with a token.
var ErrNotReady = errors.New("there is no kubeconfig with a token for the virtual garden yet")

// ErrReplaced is returned if the kubeconfig has another server or authority than that of the connection. Its users must connect again.
var ErrReplaced = errors.New("the server or the authority of the virtual garden has changed")

// tokenFile is the name of the file with the token.
const tokenFile = "token"

// Access is the operator's access to the virtual garden.
type Access struct {
	// Reader reads the Secret.
	Reader client.Reader
	// Namespace of the Secret: garden.
	Namespace string
	// Directory is where the token is kept. Only this process may read it.
	Directory string
	// Connection are the settings of the configuration, and UserAgent the name of the client.
	Connection componentbaseconfigv1alpha1.ClientConnectionConfiguration
	UserAgent  string
	// Address returns the URL of the API server; nil for that of the kubeconfig.
	Address func() string

	// connected is the connection that Refresh returned first.
	connected *rest.Config
}

// New returns the access of an operator with a configuration.
func New(reader client.Reader, namespace, directory, userAgent string, config *v1alpha1.OperatorConfiguration, address func() string) *Access {
	return &Access{
		Reader: reader, Namespace: namespace, Directory: directory, UserAgent: userAgent, Connection: config.VirtualClientConnection, Address: address,
	}
}

// Refresh reads the Secret, writes its token into the file, and returns the connection, which reads the file again. It returns an error that
// wraps ErrNotReady or ErrReplaced.
func (a *Access) Refresh(ctx context.Context) (*rest.Config, error) {
	secret := &corev1.Secret{}
	err := a.Reader.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: SecretName}, secret)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: Secret %s/%s does not exist", ErrNotReady, a.Namespace, SecretName)
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", a.Namespace, SecretName, err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[resourcesv1alpha1.DataKeyKubeconfig])
	if err != nil || config.BearerToken == "" {
		// The error may quote the token.
		return nil, fmt.Errorf("%w: Secret %s/%s has none", ErrNotReady, a.Namespace, SecretName)
	}
	if err := a.writeToken(config.BearerToken); err != nil {
		return nil, err
	}
	connection := a.connection(config)
	if a.connected == nil {
		a.connected = connection
	}
	if a.connected.Host != connection.Host || !bytes.Equal(a.connected.CAData, connection.CAData) {
		return nil, ErrReplaced
	}
	return rest.CopyConfig(a.connected), nil
}

// connection returns the connection with the token in the file.
func (a *Access) connection(given *rest.Config) *rest.Config {
	config := &rest.Config{
		Host: given.Host, UserAgent: a.UserAgent, QPS: a.Connection.QPS, Burst: int(a.Connection.Burst),
		BearerTokenFile: filepath.Join(a.Directory, tokenFile),
		TLSClientConfig: rest.TLSClientConfig{CAData: given.CAData},
		ContentConfig: rest.ContentConfig{
			AcceptContentTypes: a.Connection.AcceptContentTypes, ContentType: a.Connection.ContentType,
		},
	}
	if a.Address != nil {
		config.Host, config.ServerName = a.Address(), hostOf(given.Host)
	}
	restclient.Tune(config)
	return config
}

// writeToken writes the token into the file if it differs. The file is replaced at once, because the connection may read it at any time.
func (a *Access) writeToken(token string) error {
	path := filepath.Join(a.Directory, tokenFile)
	if present, err := os.ReadFile(path); err == nil && string(present) == token {
		return nil
	}
	next := path + ".next"
	if err := os.WriteFile(next, []byte(token), 0o600); err != nil {
		return fmt.Errorf("write the token for the virtual garden: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("write the token for the virtual garden: %w", err)
	}
	return nil
}
