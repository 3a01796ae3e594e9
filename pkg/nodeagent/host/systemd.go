package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// jobTimeout limits how long a unit may take to start or stop.
const jobTimeout = 5 * time.Minute

// Systemd controls units.
type Systemd interface {
	// Reload makes systemd read all unit files.
	Reload(ctx context.Context) error
	// Enable and Disable change whether a unit starts with the machine.
	Enable(ctx context.Context, unit string) error
	Disable(ctx context.Context, unit string) error
	// Start, Stop and Restart return when the unit has started or stopped, or with an error that says why not.
	Start(ctx context.Context, unit string) error
	Stop(ctx context.Context, unit string) error
	Restart(ctx context.Context, unit string) error
	// States returns the states of units, in their order.
	States(ctx context.Context, units []string) ([]UnitState, error)
}

// UnitState is the state of a unit, with the words of systemd.
type UnitState struct {
	Name string
	// Load is loaded, not-found, masked and so on. Active is active, inactive, failed, activating, deactivating and so on. Sub is the detail, for
	// example running, dead or auto-restart.
	Load, Active, Sub string
	// Enabled is enabled, disabled, static and so on. Type is that of a service, for example oneshot.
	Enabled, Type string
	// TriggeredBy reports whether a timer, a path or a socket starts the unit.
	TriggeredBy bool
	// Since is the time of the last change of Active.
	Since time.Time
}

// DBus controls the units of the machine by D-Bus. Each call has a connection of its own, because dbus or systemd may restart between calls.
type DBus struct{}

var _ Systemd = DBus{}

func connected(ctx context.Context, call func(*dbus.Conn) error) error {
	connection, err := dbus.NewSystemConnectionContext(ctx)
	if err != nil {
		return fmt.Errorf("connect to systemd: %w", err)
	}
	defer connection.Close()
	return call(connection)
}

// Reload implements Systemd.
func (DBus) Reload(ctx context.Context) error {
	return connected(ctx, func(c *dbus.Conn) error { return c.ReloadContext(ctx) })
}

// Enable implements Systemd.
func (DBus) Enable(ctx context.Context, unit string) error {
	return connected(ctx, func(c *dbus.Conn) error {
		_, _, err := c.EnableUnitFilesContext(ctx, []string{unit}, false, true)
		return wrap("enable", unit, err)
	})
}

// Disable implements Systemd. A unit that does not exist is disabled.
func (DBus) Disable(ctx context.Context, unit string) error {
	return connected(ctx, func(c *dbus.Conn) error {
		_, err := c.DisableUnitFilesContext(ctx, []string{unit}, false)
		if isNoUnit(err) {
			return nil
		}
		return wrap("disable", unit, err)
	})
}

// Start implements Systemd.
func (DBus) Start(ctx context.Context, unit string) error {
	return job(ctx, "start", unit, (*dbus.Conn).StartUnitContext)
}

// Stop implements Systemd. A unit that does not exist is stopped.
func (DBus) Stop(ctx context.Context, unit string) error {
	err := job(ctx, "stop", unit, (*dbus.Conn).StopUnitContext)
	if isNoUnit(err) {
		return nil
	}
	return err
}

// Restart implements Systemd.
func (DBus) Restart(ctx context.Context, unit string) error {
	return job(ctx, "restart", unit, (*dbus.Conn).RestartUnitContext)
}

// job runs a job of systemd and waits for its result.
func job(ctx context.Context, name, unit string, run func(*dbus.Conn, context.Context, string, string, chan<- string) (int, error)) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	return connected(ctx, func(c *dbus.Conn) error {
		results := make(chan string, 1)
		if _, err := run(c, ctx, unit, "replace", results); err != nil {
			return wrap(name, unit, err)
		}
		select {
		case result := <-results:
			if result == "done" || result == "skipped" { // skipped: a condition of the unit does not hold
				return nil
			}
			return fmt.Errorf("%s %s: systemd reports %q; see the journal of the unit", name, unit, result)
		case <-ctx.Done():
			return fmt.Errorf("%s %s: %w", name, unit, ctx.Err())
		}
	})
}

// States implements Systemd.
func (DBus) States(ctx context.Context, units []string) ([]UnitState, error) {
	states := make([]UnitState, len(units))
	err := connected(ctx, func(c *dbus.Conn) error {
		for i, unit := range units {
			all, err := c.GetAllPropertiesContext(ctx, unit)
			if err != nil {
				return wrap("examine", unit, err)
			}
			states[i] = stateOf(unit, all)
		}
		return nil
	})
	return states, err
}

func stateOf(unit string, all map[string]any) UnitState {
	text := func(property string) string {
		value, _ := all[property].(string)
		return value
	}
	state := UnitState{
		Name: unit, Load: text("LoadState"), Active: text("ActiveState"), Sub: text("SubState"), Enabled: text("UnitFileState"), Type: text("Type"),
	}
	if triggers, is := all["TriggeredBy"].([]string); is {
		state.TriggeredBy = len(triggers) > 0
	}
	if since, is := all["StateChangeTimestamp"].(uint64); is {
		state.Since = time.UnixMicro(int64(since)) //nolint:gosec // a time
	}
	return state
}

func wrap(name, unit string, err error) error {
	if err != nil {
		return fmt.Errorf("%s %s: %w", name, unit, err)
	}
	return nil
}

// isNoUnit reports whether systemd does not know a unit.
func isNoUnit(err error) bool {
	var refused godbus.Error
	return errors.As(err, &refused) && slices.Contains([]string{"org.freedesktop.systemd1.NoSuchUnit", "org.freedesktop.DBus.Error.FileNotFound"}, refused.Name)
}
