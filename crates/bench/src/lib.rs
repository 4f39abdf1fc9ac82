//! Reserved: workloads, measurement, report. No code yet.
