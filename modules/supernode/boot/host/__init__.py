"""What runs on the machine: first boot and enrolment. Standard library only: the image carries no package of ours."""
