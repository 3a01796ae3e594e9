package podprocess

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KubeconfigOf returns a kubeconfig with the cluster of another one, and a token of a ServiceAccount that is valid for some time.
func KubeconfigOf(ctx context.Context, c client.Client, kubeconfig []byte, account *corev1.ServiceAccount, valid time.Duration) ([]byte, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(valid.Seconds()))}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("request a token of ServiceAccount %s/%s: %w", account.Namespace, account.Name, err)
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the cluster: %w", err)
	}
	for key := range config.AuthInfos {
		config.AuthInfos[key] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	}
	return clientcmd.Write(*config)
}
