package manifest

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/operatorkit/operatorkit/internal/faults"
)

// Config is what a Carrier needs. The zero value is a valid configuration.
type Config struct {
	// HealthTimeout is how long objects may take to become ready after they were applied. Default: five minutes.
	HealthTimeout time.Duration
	// DefinitionTimeout is how long CarryOut waits for a custom resource definition before it gives up until the next try.
	// Default: 15 seconds.
	DefinitionTimeout time.Duration
	// DeletionTimeout is how long CarryOut waits for objects to go before it leaves the rest to the next reconciliation.
	// Default: two seconds.
	DeletionTimeout time.Duration
	// Limits bound what is rendered.
	Limits Limits
	// Clock is for time-outs of health. Default: the clock of the machine.
	Clock clock.PassiveClock
}

// Limits bound what is rendered. A zero is the default, and a negative value is an error.
type Limits struct {
	// Bytes is how large all files of a service may be together, with the values that are put in place of their references, and as much again
	// for documents with aliases, as what those stand for; a file that is used twice counts twice. Default: 16 MiB.
	Bytes int
	// Nodes is how many values the YAML of a service may have, with aliases and references as what they stand for. Default: 1000000.
	Nodes int
	// Objects is how many objects a service may have. Default: 5000.
	Objects int
	// Kustomizations is how many folders a build may go through; one that is used twice counts twice. Default: 200.
	Kustomizations int
	// Time is how long a build may take. Default: one minute.
	Time time.Duration
}

// withDefaults validates the configuration and fills it.
func (c Config) withDefaults() (Config, error) {
	var wrong faults.List
	positive := func(field string, value *time.Duration, standard time.Duration) {
		wrong.If(*value < 0, "%s is %s: it must be positive, or zero for %s", field, *value, standard)
		if *value == 0 {
			*value = standard
		}
	}
	number := func(field string, value *int, standard int) {
		wrong.If(*value < 0, "%s is %d: it must be positive, or zero for %d", field, *value, standard)
		if *value == 0 {
			*value = standard
		}
	}
	positive("HealthTimeout", &c.HealthTimeout, 5*time.Minute)
	positive("DefinitionTimeout", &c.DefinitionTimeout, 15*time.Second)
	positive("DeletionTimeout", &c.DeletionTimeout, 2*time.Second)
	positive("Limits.Time", &c.Limits.Time, time.Minute)
	number("Limits.Bytes", &c.Limits.Bytes, 16<<20)
	number("Limits.Nodes", &c.Limits.Nodes, 1_000_000)
	number("Limits.Objects", &c.Limits.Objects, 5000)
	number("Limits.Kustomizations", &c.Limits.Kustomizations, 200)
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if err := wrong.Of("manifest.Config"); err != nil {
		return Config{}, err
	}
	return c, nil
}
