package controller

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// maxSkew is how much the clock of the process may differ from that of the API server.
	maxSkew = time.Minute
	// serverTimeTimeout limits the request for the time of the API server.
	serverTimeTimeout = 10 * time.Second
)

// ClockCheck returns an error if a time differs by more than a minute from the clock of the API server. Controllers that delete objects
// because of their age call it first: a clock that is wrong would delete all of them.
type ClockCheck func(ctx context.Context, now time.Time) error

// NewClockCheck returns a check that asks the API server of a manager.
func NewClockCheck(mgr manager.Manager) ClockCheck {
	return clockCheck(mgr.GetConfig(), mgr.GetHTTPClient())
}

func clockCheck(config *rest.Config, httpClient *http.Client) ClockCheck {
	return func(ctx context.Context, now time.Time) error {
		server, err := serverTime(ctx, config, httpClient)
		if err != nil {
			return fmt.Errorf("read the time of the API server: %w", err)
		}
		if skew := now.Sub(server).Abs(); skew > maxSkew {
			return fmt.Errorf("the clock of this process differs from that of the API server by %s: nothing is deleted because of its age until "+
				"they agree; synchronize the clocks of both machines", skew.Round(time.Second))
		}
		return nil
	}
}

// serverTime returns the header Date of a response of the API server.
func serverTime(ctx context.Context, config *rest.Config, httpClient *http.Client) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeTimeout)
	defer cancel()
	address, _, err := rest.DefaultServerURL(config.Host, "", schema.GroupVersion{}, true)
	if err != nil {
		return time.Time{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, address.JoinPath("version").String(), http.NoBody)
	if err != nil {
		return time.Time{}, err
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return time.Time{}, err
	}
	if err := response.Body.Close(); err != nil {
		return time.Time{}, err
	}
	return http.ParseTime(response.Header.Get("Date"))
}
