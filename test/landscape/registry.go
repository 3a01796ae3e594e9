package landscape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/trellis-k8s/trellis/hack/image/oci"
)

// ServeImages runs the registry of the landscape. It has no TLS because only the landscape and its host can reach it. It
// returns when the context ends or the server fails.
func ServeImages(ctx context.Context, directory, address string, out io.Writer) error {
	store, err := oci.Open(directory)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: address, Handler: store.Registry(), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	fmt.Fprintf(out, "serving the images in %s on %s\n", directory, address)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving images: %w", err)
	}
	return nil
}
